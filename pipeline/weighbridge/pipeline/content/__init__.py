"""The only room that decrypts: token ids go in, fewer bytes or numbers come out, never ids."""
