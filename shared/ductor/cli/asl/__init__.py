"""Amazon States Language files as definitions of ours: reads text, writes text, runs nothing."""
