/* What Unicode's composed form needs to know, as the `tokenizers` library has it. */
#ifndef COLIBRI_NFC_TABLES_H
#define COLIBRI_NFC_TABLES_H

#include <stdint.h>

enum { NFC_N_CLASS_RUNS = 496, NFC_N_DECOMPOSITIONS = 2060, NFC_N_COMPOSITIONS = 940, NFC_N_PAGES = 768 };
enum { NFC_N_BITMAPS = 63 };

/* first code point << 8 | combining class of each run, ascending; a run lasts until the next one. */
extern const uint32_t nfc_class_runs[NFC_N_CLASS_RUNS];

/* (code point, first part, second part or 0), ascending; the first part may decompose further. */
extern const uint32_t nfc_decompositions[NFC_N_DECOMPOSITIONS][3];

/* Which of them compose again, sorted by their parts. */
extern const uint16_t nfc_compositions[NFC_N_COMPOSITIONS];

/* Code points that may be changed, moved, or composed with what is before them: a bit each. The bitmap of each 256 code
 * points; later ones have none that are unstable. */
extern const uint8_t nfc_page_of[NFC_N_PAGES];
extern const uint8_t nfc_unstable[NFC_N_BITMAPS][32];

#endif
