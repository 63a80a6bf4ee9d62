"""`ductor test`: users' own tests of their workflows, run by the simulator with the real engine and use cases."""
