"""From a thread to what the model reads: counting, fitting, assembling."""
