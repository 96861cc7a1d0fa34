"""The machines a session can see, and how they are simulated."""
