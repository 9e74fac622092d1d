"""Tables in: one reader for each kind of file, and one for frames. What is said of a file quotes no cell."""
