"""PostgreSQL, Redis and an SSH target for one machine, without root, Docker or a package manager.

`python -m benchlab.embedded` starts a complete BenchLab; tests use the classes one by one.
Nothing in this package imports Django: it starts the processes that do.
"""
