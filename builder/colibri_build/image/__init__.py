"""Make a bootable image: Firmware -> partitions, initramfs, manifest."""
