"""The pure coordinator core: no I/O, no clock, no randomness, no logging."""
