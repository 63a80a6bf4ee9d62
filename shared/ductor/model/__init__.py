"""Data only: definitions, runs, intents, transitions, commands, attempts and errors. Imports nothing of ours."""
