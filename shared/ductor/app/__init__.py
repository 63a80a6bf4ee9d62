"""The use cases: what people and queues ask for, on top of the ports. Names no adapter and no transport."""
