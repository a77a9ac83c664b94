"""Output to the terminal: phases of long work, texts and questions."""
