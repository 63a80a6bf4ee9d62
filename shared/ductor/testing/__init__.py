"""Ductor on a virtual clock: in-memory ports that behave like the real ones, for the simulator and for users' tests."""
