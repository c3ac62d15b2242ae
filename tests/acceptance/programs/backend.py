"""A build backend that needs no package: the project is its own folder."""

import base64
import hashlib
import zipfile
from pathlib import Path

INFO = "pages-1.0.dist-info"
FILES = {
    "pages.pth": f"{Path.cwd()}\n",
    f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: pages\nVersion: 1.0\n"
    "Provides-Extra: test\nRequires-Dist: sampler==1.0; extra == 'test'\n",
    f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def build_editable(folder, config_settings=None, metadata_directory=None):
    """Write a wheel that leads back to the folder that is built."""
    name = "pages-1.0-py3-none-any.whl"
    record = ""
    with zipfile.ZipFile(Path(folder, name), "w") as archive:
        for path, text in FILES.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            record += f"{path},sha256={digest.decode().rstrip('=')},{len(text)}\n"
            archive.writestr(path, text)
        archive.writestr(f"{INFO}/RECORD", f"{record}{INFO}/RECORD,,\n")
    return name


build_wheel = build_editable
