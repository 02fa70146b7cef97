//! MARC records: ISO 2709, MARCXML, MARC-in-JSON and mnemonic text, with MARC-8.
