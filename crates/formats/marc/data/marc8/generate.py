"""Writes sets.bin and eacc.bin from the tables of a pymarc installation.

    pip install pymarc && python generate.py

The layout of both files is described in README.md beside this program.
"""

import pathlib

from pymarc import marc8_mapping

HERE = pathlib.Path(__file__).parent

# Final bytes of the escape sequences, in the order that `src/marc8/tables.rs` expects.
SETS = "ESNQ234bpg"


def sets_bin():
    rows = bytearray()
    for final in SETS:
        table = {key & 0x7F: value for key, value in marc8_mapping.CODESETS[ord(final)].items() if key & 0x7F > 0x20}
        for byte in range(0x21, 0x7F):
            code_point, combining = table.get(byte, (0, 0))
            rows += bytes([1 if combining else 0]) + code_point.to_bytes(2, "big")
    return rows


def eacc_bin():
    table = {key: code_point for key, (code_point, _) in marc8_mapping.CODESETS[0x31].items()}
    for key, code_point in marc8_mapping.ODD_MAP.items():
        table.setdefault(key, code_point)
    rows = bytearray()
    for key in sorted(table):
        rows += key.to_bytes(3, "big") + table[key].to_bytes(2, "big")
    return rows


(HERE / "sets.bin").write_bytes(sets_bin())
(HERE / "eacc.bin").write_bytes(eacc_bin())
