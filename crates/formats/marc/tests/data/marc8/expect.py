"""Writes expected.tsv: for every MARC-8 record of the corpus a hash of the text that pymarc decodes.

    pip install pymarc==5.4.0 && python expect.py ../../../../../../../shared/data/marc > expected.tsv

A line: file, number of the record, FNV-1a (64 bits) of all values that are not plain ASCII, each as
"tag code value\n" (code "-" in control fields) in UTF-8. See README.md beside this program.
"""

import io
import pathlib
import sys

import pymarc


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def lines(record):
    for field in record.fields:
        if field.is_control_field():
            yield field.tag, "-", field.data
        else:
            for subfield in field.subfields:
                yield field.tag, subfield.code, subfield.value


def main(corpus):
    for path in sorted(corpus.glob("*/*")):
        if path.suffix not in (".mrc", ".marc", ".dat", ".usmarc"):
            continue
        for number, raw in enumerate(path.read_bytes().split(b"\x1d")[:-1], 1):
            raw = raw.lstrip(b"\r\n\x1a\x00 ") + b"\x1d"
            # Only sound records: pymarc and we take broken ones apart in different ways.
            if len(raw) < 26 or raw[9:10] != b" " or not raw[:5].isdigit() or int(raw[:5]) != len(raw):
                continue
            reader = pymarc.MARCReader(io.BytesIO(raw), to_unicode=True, hide_utf8_warnings=True)
            record = next(reader, None)
            if record is None:
                continue
            text = "".join(f"{tag} {code} {value}\n" for tag, code, value in lines(record) if not value.isascii())
            if text:
                name = path.relative_to(corpus).as_posix()
                print(f"{name}\t{number}\t{fnv1a(text.encode('utf-8', 'surrogatepass')):016x}")


main(pathlib.Path(sys.argv[1]))
