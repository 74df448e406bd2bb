"""Run the compiler and linker: SourceTree -> Firmware."""
