/* Reads the events of a CSV file, with errors that say where, what and what to do. */
#include "orders.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/* One record: fields unquoted into `text`, field i being text[starts[i] .. starts[i + 1]]. */
typedef struct record {
    char *text;
    size_t text_len, text_room;
    size_t *starts;
    size_t field_count, field_room;
    uint64_t line;
    bool quote_open; /* the file ended inside quotes */
} record;

typedef struct reader {
    const char *path;
    char *data;
    size_t len, at;
    uint64_t line;
    record row;
    orders_text *header;
    size_t column_count;
    size_t *buckets; /* of the interned keys: index + 1, 0 for none */
    size_t bucket_count;
} reader;

static void out_of_memory(void)
{
    fputs("orders: out of memory\n", stderr);
    exit(1);
}

void *orders_grow(void *block, size_t count, size_t size)
{
    void *grown = count > SIZE_MAX / size ? NULL : realloc(block, count * size + 1);
    if (grown == NULL)
        out_of_memory();
    return grown;
}

void *orders_zeroed(size_t count, size_t size)
{
    void *block = calloc(count + 1, size);
    if (block == NULL)
        out_of_memory();
    return block;
}

/* Says what is wrong; `column` may be NULL, `line` 0. Always false. */
__attribute__((format(printf, 4, 5))) static bool complain(const reader *in, uint64_t line,
                                                           const char *column,
                                                           const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "orders: %s", in->path);
    if (line != 0)
        fprintf(stderr, ", line %" PRIu64, line);
    if (column != NULL)
        fprintf(stderr, ", column \"%s\"", column);
    fputs(": ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs(".\n", stderr);
    return false;
}

/* ---- the file ---- */

/* zlib reads a file that is not gzipped as it is. */
static bool load(reader *in)
{
    static const char advice[] = "Give the path of a readable CSV file, plain or gzipped";
    size_t room = 0;
    int got, code = Z_OK;
    FILE *probe = fopen(in->path, "rb");
    gzFile file;

    if (probe == NULL)
        return complain(in, 0, NULL, "cannot be read: %s. %s", strerror(errno), advice);
    fclose(probe);
    file = gzopen(in->path, "rb");
    if (file == NULL)
        return complain(in, 0, NULL, "cannot be read: %s. %s", strerror(errno), advice);
    do {
        if (room - in->len < 65536) {
            room = room * 2 + 131072;
            in->data = orders_grow(in->data, room, 1);
        }
        errno = 0;
        got = gzread(file, in->data + in->len, 65536);
        if (got > 0)
            in->len += (size_t)got;
    } while (got > 0);
    (void)gzerror(file, &code);
    if (gzclose(file) != Z_OK || got < 0 || code != Z_OK) {
        uint64_t line = 1;
        if (code == Z_ERRNO)
            return complain(in, 0, NULL, "cannot be read: %s. %s", strerror(errno), advice);
        for (size_t i = 0; i < in->len; i++)
            line += in->data[i] == '\n';
        return complain(in, line, NULL, "the gzip data is damaged or cut short. Check it with "
                                        "gzip -t, or fetch it again");
    }
    return true;
}

/* ---- records ---- */

static void add_byte(record *row, char byte)
{
    if (row->text_len == row->text_room) {
        row->text_room = row->text_room * 2 + 256;
        row->text = orders_grow(row->text, row->text_room, 1);
    }
    row->text[row->text_len++] = byte;
}

static void end_field(record *row)
{
    if (row->field_count + 2 > row->field_room) {
        row->field_room = row->field_room * 2 + 16;
        row->starts = orders_grow(row->starts, row->field_room, sizeof(size_t));
    }
    row->starts[0] = 0;
    row->starts[++row->field_count] = row->text_len;
}

static orders_text field(const record *row, size_t index)
{
    orders_text value = { row->text + row->starts[index], 0 };
    value.len = row->starts[index + 1] - row->starts[index];
    return value;
}

static char peek(const reader *in, size_t ahead)
{
    return in->at + ahead < in->len ? in->data[in->at + ahead] : '\0';
}

/* Reads up to the end of a field; a quote inside quotes is written twice. */
static void read_field(reader *in)
{
    bool quoted = peek(in, 0) == '"';
    in->at += quoted;
    while (in->at < in->len) {
        char byte = in->data[in->at];
        if (quoted && byte == '"' && peek(in, 1) != '"') {
            quoted = false;
            in->at++;
            continue;
        }
        if (!quoted && (byte == ',' || byte == '\n' || byte == '\r'))
            break;
        in->at += quoted && byte == '"' ? 2 : 1;
        in->line += byte == '\n';
        add_byte(&in->row, byte);
    }
    in->row.quote_open = quoted;
    end_field(&in->row);
}

/* False at the end of the file. Blank lines are no records. */
static bool read_record(reader *in)
{
    while (in->at < in->len && (in->data[in->at] == '\n' || in->data[in->at] == '\r'))
        in->line += in->data[in->at++] == '\n';
    if (in->at == in->len)
        return false;
    in->row.text_len = in->row.field_count = 0;
    in->row.line = in->line;
    read_field(in);
    while (peek(in, 0) == ',' && in->at < in->len) {
        in->at++;
        read_field(in);
    }
    return true;
}

/* ---- checks ---- */

/* Length of the well-formed UTF-8 at the beginning of the text. */
static size_t utf8_valid_up_to(orders_text text)
{
    const unsigned char *byte = (const unsigned char *)text.data;
    size_t at = 0;
    while (at < text.len) {
        unsigned char lead = byte[at];
        size_t more = lead < 0x80 ? 0 : lead < 0xc2 ? 9 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
        unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (more == 9 || lead > 0xf4 || at + more >= text.len)
            return at;
        for (size_t i = 1; i <= more; i++) {
            if (byte[at + i] < least || byte[at + i] > most)
                return at;
            least = 0x80;
            most = 0xbf;
        }
        at += more + 1;
    }
    return at;
}

static bool check_utf8(const reader *in, const char *column, orders_text value)
{
    size_t valid = utf8_valid_up_to(value);
    if (valid == value.len)
        return true;
    return complain(in, in->row.line, column,
                    "the value is not UTF-8: byte 0x%02x at its position %zu. Convert the file, "
                    "for example with iconv -f latin1 -t utf-8",
                    (unsigned)(unsigned char)value.data[valid], valid + 1);
}

static bool check_shape(const reader *in)
{
    size_t has = in->row.field_count, wants = in->column_count;
    char number[32];
    if (in->row.quote_open)
        return complain(in, in->row.line, has <= wants ? in->header[has - 1].data : NULL,
                        "a quoted value that begins in this record is never closed. Close the "
                        "quote; a quote inside a quoted value is written twice");
    if (has < wants)
        return complain(in, in->row.line, in->header[has].data,
                        "the line has %zu fields, the header names %zu. Complete the line; this "
                        "is the first column without a value",
                        has, wants);
    if (has > wants) {
        orders_text extra = field(&in->row, wants);
        snprintf(number, sizeof(number), "%zu", wants + 1);
        return complain(in, in->row.line, number,
                        "the line has %zu fields, the header names %zu. Remove what is too much, "
                        "from \"%.*s\" on, or quote a value that holds a comma",
                        has, wants, (int)extra.len, extra.data);
    }
    return true;
}

static bool parse_seq(const reader *in, const char *column, orders_text value, int64_t *seq)
{
    char digits[32], *end = digits;
    while (value.len > 0 && (*value.data == ' ' || *value.data == '\t'))
        value.data++, value.len--;
    while (value.len > 0 && (value.data[value.len - 1] == ' ' || value.data[value.len - 1] == '\t'))
        value.len--;
    errno = 0;
    if (value.len > 0 && value.len < sizeof(digits)) {
        memcpy(digits, value.data, value.len);
        digits[value.len] = '\0';
        *seq = strtoll(digits, &end, 10);
    }
    if (value.len > 0 && end == digits + value.len && errno == 0)
        return true;
    return complain(in, in->row.line, column,
                    "\"%.*s\" is not a whole number of 64 bits. Correct the value, or name "
                    "another column with --seq",
                    (int)value.len, value.data);
}

/* ---- columns and keys ---- */

static orders_text copy(orders_text text)
{
    orders_text copied = { orders_grow(NULL, text.len + 1, 1), text.len };
    memcpy(copied.data, text.data, text.len);
    copied.data[text.len] = '\0';
    return copied;
}

static bool read_header(reader *in)
{
    char number[32];
    if (in->len >= 3 && memcmp(in->data, "\xef\xbb\xbf", 3) == 0)
        in->at = 3;
    if (!read_record(in))
        return complain(in, 1, NULL, "the file is empty: it has no header. The first line must "
                                     "name the columns, separated by commas");
    in->header = orders_zeroed(in->row.field_count, sizeof(orders_text));
    for (size_t i = 0; i < in->row.field_count; i++) {
        snprintf(number, sizeof(number), "%zu", i + 1);
        if (!check_utf8(in, number, field(&in->row, i)))
            return false;
        in->header[i] = copy(field(&in->row, i));
        in->column_count = i + 1;
    }
    return true;
}

static bool find_column(const reader *in, const char *wanted, const char *option, size_t *index)
{
    size_t found = 0;
    for (size_t i = 0; i < in->column_count; i++) {
        if (strcmp(in->header[i].data, wanted) == 0) {
            *index = i;
            found++;
        }
    }
    if (found == 1)
        return true;
    if (found > 1)
        return complain(in, 1, wanted, "two columns have this name. Give each column a name of "
                                       "its own, then name one with %s", option);
    (void)complain(in, 1, wanted, "there is no such column. Name one of these with %s", option);
    for (size_t i = 0; i < in->column_count; i++)
        fprintf(stderr, "  %s\n", in->header[i].data);
    return false;
}

static uint32_t java_hash(orders_text text)
{
    const unsigned char *byte = (const unsigned char *)text.data;
    uint32_t hash = 0;
    for (size_t at = 0; at < text.len;) {
        size_t more = byte[at] < 0x80 ? 0 : byte[at] < 0xe0 ? 1 : byte[at] < 0xf0 ? 2 : 3;
        uint32_t scalar = more == 0 ? byte[at] : byte[at] & (0x3fu >> more);
        for (size_t i = 1; i <= more; i++)
            scalar = scalar << 6 | (byte[at + i] & 0x3fu);
        if (scalar >= 0x10000) { /* two UTF-16 units */
            hash = hash * 31 + (0xd800 + ((scalar - 0x10000) >> 10));
            scalar = 0xdc00 + ((scalar - 0x10000) & 0x3ff);
        }
        hash = hash * 31 + scalar;
        at += more + 1;
    }
    return hash;
}

uint32_t orders_select_queue(orders_text key, uint32_t queue_count)
{
    int64_t remainder = (int64_t)(int32_t)java_hash(key) % (int64_t)queue_count;
    return (uint32_t)(remainder < 0 ? -remainder : remainder);
}

static void rehash(reader *in, const orders_input *input)
{
    in->bucket_count = in->bucket_count * 2 + 1024;
    free(in->buckets);
    in->buckets = orders_zeroed(in->bucket_count, sizeof(size_t));
    for (size_t i = 0; i < input->key_count; i++) {
        size_t at = java_hash(input->keys[i]) % in->bucket_count;
        while (in->buckets[at] != 0)
            at = (at + 1) % in->bucket_count;
        in->buckets[at] = i + 1;
    }
}

static size_t intern(reader *in, orders_input *input, orders_text key)
{
    size_t at;
    if (input->key_count * 2 >= in->bucket_count) {
        rehash(in, input);
        input->keys = orders_grow(input->keys, in->bucket_count, sizeof(orders_text));
    }
    for (at = java_hash(key) % in->bucket_count; in->buckets[at] != 0;
         at = (at + 1) % in->bucket_count) {
        orders_text known = input->keys[in->buckets[at] - 1];
        if (known.len == key.len && memcmp(known.data, key.data, key.len) == 0)
            return in->buckets[at] - 1;
    }
    input->keys[input->key_count] = copy(key);
    in->buckets[at] = ++input->key_count;
    return input->key_count - 1;
}

static bool read_events(reader *in, orders_input *input, const char *key, const char *seq)
{
    size_t key_index = 0, seq_index = 0, room = 0;
    if (!load(in) || !read_header(in) || !find_column(in, key, "--key", &key_index))
        return false;
    if (seq != NULL && !find_column(in, seq, "--seq", &seq_index))
        return false;
    while (read_record(in)) {
        orders_event event = { 0, 0, in->row.line };
        if (!check_shape(in))
            return false;
        for (size_t i = 0; i < in->column_count; i++) {
            if (!check_utf8(in, in->header[i].data, field(&in->row, i)))
                return false;
        }
        if (seq != NULL && !parse_seq(in, seq, field(&in->row, seq_index), &event.seq))
            return false;
        event.key = intern(in, input, field(&in->row, key_index));
        if (input->event_count == room) {
            room = room * 2 + 1024;
            input->events = orders_grow(input->events, room, sizeof(orders_event));
        }
        input->events[input->event_count++] = event;
    }
    return true;
}

bool orders_input_read(orders_input *input, const char *path, const char *key, const char *seq)
{
    reader in = { .path = path, .line = 1 };
    bool fine;
    memset(input, 0, sizeof(*input));
    input->has_seq = seq != NULL;
    fine = read_events(&in, input, key, seq);
    for (size_t i = 0; i < in.column_count; i++)
        free(in.header[i].data);
    free(in.header);
    free(in.buckets);
    free(in.row.text);
    free(in.row.starts);
    free(in.data);
    if (!fine)
        orders_input_free(input);
    return fine;
}

void orders_input_free(orders_input *input)
{
    for (size_t i = 0; i < input->key_count; i++)
        free(input->keys[i].data);
    free(input->keys);
    free(input->events);
    memset(input, 0, sizeof(*input));
}
