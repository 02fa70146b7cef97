"""Certificates for servers that tests start."""

import subprocess
from pathlib import Path


def certified(folder: Path) -> Path:
    """Creates an authority and a certificate of it for this machine: `server.pem`, `server.key`. Returns the authority's certificate."""
    authority = folder / "authority.pem"

    def openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    key = ["-newkey", "rsa:2048", "-nodes", "-keyout"]
    openssl("req", "-x509", *key, "authority.key", "-out", str(authority), "-days", "2", "-subj", "/CN=authority of tests")
    openssl("req", *key, "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", str(authority), "-CAkey", "authority.key", "-CAcreateserial",
        "-out", "server.pem", "-days", "2", "-extfile", "names",
    )
    return authority
