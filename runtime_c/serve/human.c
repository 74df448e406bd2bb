#include "serve/human.h"

#include <stdint.h>
#include <string.h>

#include "app/lines.h"
#include "link/link.h"
#include "serve/pump.h"
#include "store/model_tables.h"

enum { BACKSPACE = 0x08, ERASE_LINE = 0x15, ESCAPE = 0x1B, DELETE = 0x7F, DIGEST_DIGITS = 16, MOST_ERASED = 70 };

static struct {
    char line[LINE_BYTES];
    size_t n;
    bool is_done;    /* line[] was handed out: the next byte begins another */
    bool after_cr;   /* an LF that follows belongs to it */
    int escape;      /* 0, or the bytes of a terminal's key sequence that have come */
    bool is_in_line; /* what was written does not end its line */
} human;             /* all zeros, so that the line takes no room in the file */

static void put(const char *text, size_t n) {
    if (n > 0) {
        human.is_in_line = text[n - 1] != '\n';
        pump_text(text, n);
    }
}

static void put_text(const char *text) {
    put(text, strlen(text));
}

static void sink(const char *bytes, size_t n) {
    put(bytes, n);
}

/* One word of a line that programs read, too: what would break it comes as '_'. */
static void put_word(const char *text) {
    for (; *text != '\0'; text++) {
        bool breaks = (unsigned char)*text <= ' ' || (unsigned char)*text == DELETE;
        put(breaks ? "_" : text, 1);
    }
}

void human_leave(void) {
    if (human.is_in_line) {
        put_text("\n");
    }
}

void human_greet(void) {
    human_leave();
    put_text("READY colibri protocol=1 model=");
    put_word(model_name);
    put_text(" digest=");
    put(model_digest, DIGEST_DIGITS);
    put_text("\n");
    human_forget();
    human_prompt();
}

void human_prompt(void) {
    put_text("> ");
}

void human_forget(void) {
    human.n = 0;
    human.is_done = false;
    human.escape = 0;
}

const char *human_line(size_t *n) {
    *n = human.n;
    human.is_done = true;
    return human.line;
}

/* Columns of a terminal that a character takes: none for marks that join the one before, two for East Asian ones. */
static int columns_of(uint32_t c) {
    static const struct {
        uint32_t first;
        uint32_t last;
        int columns;
    } ranges[] = {
        {0x0300, 0x036F, 0},   {0x200B, 0x200F, 0},   {0xFE00, 0xFE0F, 0},   {0x1100, 0x115F, 2},   {0x2E80, 0xA4CF, 2},
        {0xAC00, 0xD7A3, 2},   {0xF900, 0xFAFF, 2},   {0xFE30, 0xFE6F, 2},   {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},
        {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1F6FF, 2}, {0x1F900, 0x1F9FF, 2}, {0x20000, 0x3FFFD, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (c >= ranges[i].first && c <= ranges[i].last) {
            return ranges[i].columns;
        }
    }
    return 1;
}

/* Takes the last character off the line; returns its columns. */
static int drop_character(void) {
    uint32_t tail = 0;
    int shift = 0;
    while (human.n > 0) {
        unsigned char c = (unsigned char)human.line[--human.n];
        bool continues = (c & 0xC0) == 0x80 && shift < 18;
        if (!continues) {
            uint32_t mask = c < 0x80 ? 0x7Fu : c < 0xE0 ? 0x1Fu : c < 0xF0 ? 0x0Fu : 0x07u;
            return columns_of(tail | (c & mask) << shift);
        }
        tail |= (uint32_t)(c & 0x3F) << shift;
        shift += 6;
    }
    return 0;
}

static void erase_character(void) {
    for (int columns = drop_character(); columns > 0; columns--) {
        put_text("\b \b");
    }
}

/* A line that was wrapped by the terminal cannot be wiped: it gets a new prompt instead. */
static void erase_line(void) {
    if (human.n > MOST_ERASED) {
        human.n = 0;
        put_text("\n");
        human_prompt();
    }
    while (human.n > 0) {
        erase_character();
    }
}

/* Whether a byte belongs to a key sequence such as ESC [ A (arrow up) or ESC O P, which edits nothing here. */
static bool is_escaped(unsigned char key) {
    if (human.escape == 0) {
        human.escape = key == ESCAPE ? 1 : 0;
        return key == ESCAPE;
    }
    bool starts = human.escape == 1 && (key == '[' || key == 'O');
    bool ends = human.escape > 1 && key >= 0x40 && key <= 0x7E;
    human.escape = starts ? 2 : ends || human.escape == 1 ? 0 : human.escape;
    return true;
}

static void insert(unsigned char key) {
    if (human.n == sizeof human.line) {
        return;
    }
    human.line[human.n++] = (char)key;
    put(key == '\t' ? " " : (const char *)&key, 1);
}

static bool end_line(void) {
    put_text("\n");
    if (human.n == 0) {
        human_prompt();
    }
    return human.n > 0;
}

bool human_type(unsigned char key) {
    if (human.is_done) {
        human_forget();
    }
    bool is_second = key == '\n' && human.after_cr;
    human.after_cr = key == '\r';
    if (is_second || is_escaped(key)) {
        return false;
    }
    switch (key) {
    case '\r':
    case '\n':
        return end_line();
    case BACKSPACE:
    case DELETE:
        erase_character();
        break;
    case ERASE_LINE:
        erase_line();
        break;
    case KEY_INTERRUPT:
        human_forget();
        put_text("^C\n");
        human_prompt();
        break;
    default:
        if (key >= ' ' || key == '\t') {
            insert(key);
        }
    }
    return false;
}

void human_answer(const char *text, size_t n) {
    put(text, n);
}

void human_end(const Report *report, long long milliseconds) {
    static Writer writer = {.sink = sink};
    human_leave();
    if (report->message[0] != '\0') {
        write_text(&writer, report->message);
        write_text(&writer, "\n");
    }
    write_text(&writer, "-- ");
    write_text(&writer,
               report->status == COLIBRI_OK ? report_stop_name(report->stop) : colibri_status_name(report->status));
    write_text(&writer, ", ");
    write_integer(&writer, report->n_tokens);
    write_text(&writer, report->n_tokens == 1 ? " token, " : " tokens, ");
    write_integer(&writer, milliseconds);
    write_text(&writer, " ms\n");
    (void)write_flush(&writer);
    human_prompt();
}
