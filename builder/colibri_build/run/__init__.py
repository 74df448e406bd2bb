"""Run firmware under QEMU or natively and read its console."""
