"""The process that holds the model: llama.cpp's server until standard input ends.

Called as `python -m turnout.localmodel.child MODEL NAME THREADS CONTEXT`; prints the server's
address on one line once the model is loaded.
"""

import ctypes
import os
import signal
import sys

import xllamacpp

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve until the parent closes standard input, or dies."""
    # Standard input ends with the parent too, but not while the model is still being loaded.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    path, name, threads, context = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = int(context)
    params.n_parallel = 1
    params.cache_prompt = True
    params.use_jinja = True
    params.ui = False
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads = int(threads)
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    # Without the clean-up of a model that the operating system frees faster.
    os._exit(0)


if __name__ == "__main__":
    main()
