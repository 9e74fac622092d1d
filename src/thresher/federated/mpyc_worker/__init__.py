"""The process in which a party speaks MPyC with the others; its parent is ``thresher.federated.mpyc``.

MPyC reads the command line, configures logging and keeps one runtime for each process, and it waits for ever when a
peer dies. So it gets a process of its own that can be killed. It starts in a quarter of a second, because it loads
nothing of thresher but this folder; the folder is imported under the name ``mpyc_worker``, hence relative imports.
"""
