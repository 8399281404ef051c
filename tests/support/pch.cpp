// The carrier of the precompiled googletest header; it holds no code of its own.
