// The source file of the precompiled googletest header; it contains no code.
