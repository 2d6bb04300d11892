"""`python -m cosmati` is the program `cosmati`."""
from ._program import main

main()
