"""What a person sees: phases of long work, texts and questions at the terminal."""
