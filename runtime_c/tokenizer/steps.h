/* The steps in which tokenizers differ. The generated tables name those of one model; the linker drops the others. */
#ifndef COLIBRI_TOKENIZER_STEPS_H
#define COLIBRI_TOKENIZER_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tokenizer/id_list.h"
#include "tokenizer/tokenizer.h"

/* A stretch of valid UTF-8, length > 0. `at_start`: it is the start of the prompt. */
typedef struct {
    const uint8_t *bytes;
    size_t length;
    bool at_start;
} Stretch;

/* Replaces a stretch by changed text, which lives until the next step of this kind. COLIBRI_E_PROMPT_TOO_LONG: no room.
 */
typedef colibri_status ChangeText(Stretch *stretch);
/* Appends the ids of one word, length > 0. */
typedef colibri_status EncodeWord(const uint8_t *word, size_t length, IdList *out);

typedef struct {
    ChangeText *normalize; /* before the second set of added tokens is looked for; NULL: nothing to do */
    ChangeText *prepare;   /* before the text is split into words; NULL: nothing to do */
    EncodeWord *encode_word;
    size_t (*push)(TokenStream *stream, int token, char *out); /* as token_stream_push */
    size_t (*finish)(TokenStream *stream, char *out);          /* as token_stream_finish */
} TokenizerSteps;

/* Room for one changed stretch, where a step of this model needs it. */
extern uint8_t tokenizer_text[];
extern const size_t tokenizer_text_bytes;

/* prepare: a space before text that does not start with one. */
ChangeText prepare_prefix_space;

/* prepare of SentencePiece models: U+2581 becomes a space, as which the tables have it, and a space goes in front of
 * every stretch (always), of each that starts with none (unless), of the first one if it starts with none (first), or
 * of no stretch (plain). */
ChangeText prepare_spaces_always;
ChangeText prepare_spaces_unless;
ChangeText prepare_spaces_first;
ChangeText prepare_spaces_plain;

/* normalize: Unicode's composed form, NFC. */
ChangeText normalize_nfc;

/* encode_word of byte-level vocabularies; known: bytes without a token are left out. */
EncodeWord bytes_encode_word;
EncodeWord bytes_encode_word_known;

/* Of both: a word by its merges alone. */
EncodeWord bytes_merge_word;

/* encode_word of vocabularies of characters, in which other characters are spelled in byte tokens. */
EncodeWord chars_encode_word;

/* Decoding of byte-level tokens: bytes that can be no UTF-8 come out as U+FFFD, as Python's errors="replace" does. */
size_t bytes_push(TokenStream *stream, int token, char *out);
size_t bytes_finish(TokenStream *stream, char *out);

/* Decoding with byte tokens: a run of them that is not UTF-8 comes out as one U+FFFD a byte, as in the `tokenizers`
 * library; a run longer than CHARS_RUN_BYTES is taken in parts. strip: without one space at the start. */
enum { CHARS_RUN_BYTES = 1000 };
size_t chars_push(TokenStream *stream, int token, char *out);
size_t chars_finish(TokenStream *stream, char *out);
size_t chars_push_strip(TokenStream *stream, int token, char *out);
size_t chars_finish_strip(TokenStream *stream, char *out);

#endif
