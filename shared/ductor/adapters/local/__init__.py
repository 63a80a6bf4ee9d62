"""The ports on one SQLite file and threads: durable on a laptop, with nothing to install or to keep alive."""
