"""A store that is a folder or a device gets no advice to change its permissions."""
import subprocess

from memory import PROGRAM

for store in ("/", ".", "/dev/null", "/tmp"):
    done = subprocess.run([PROGRAM, "--store", store, "sessions"], capture_output=True, text=True)
    assert "chmod 600" not in done.stdout + done.stderr, (store, done.stderr)
