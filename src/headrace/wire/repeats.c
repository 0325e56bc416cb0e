/* `read_repeat_plainly` of repeats.py, compiled: the same arguments, the same result. A test holds the two equal.
   The module also has `are_sound` and `walk_batches`, which are in the headers below records/. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

#include "records/batch_walk.h"
#include "records/header.h"
#include "records/walk.h"

enum {
    SIZE_BYTES = 4,
    SHAPE_AT = 8,                /* behind api key, version and correlation id */
    LEAST_BEHIND_SHAPE = 4,
    FLEXIBLE_FROM = 9,
    LENGTH_BYTES_MAX = 5,        /* of a variable-length integer */
    ZSTD = 4,                    /* older codecs are below */
    RECORD_BYTES_MIN = 7,
    RECORDS_MAX = INT32_MAX / RECORD_BYTES_MIN,
    WALKED_RECORDS_MAX = 100000, /* above it a batch is left to those who walk it beside the loop */
    WALKED_WITH_OTHERS_MAX = 1000, /* records that are walked while other threads wait */
};

static const int64_t expansion_max[ZSTD] = {1, 1032, 22, 255}; /* `EXPANSION_MAX` of validation.py */

/* As HEADER.unpack_from, if the bytes are one batch that is plainly as it should be (`is_plain`); otherwise None. */
static PyObject *plain_header(const uint8_t *batch, Py_ssize_t size) {
    if (size < HEADER_BYTES) Py_RETURN_NONE;
    int64_t fields[HEADER_FIELDS];
    read_header(batch, fields);
    const int64_t base_offset = fields[0], length = fields[1], magic = fields[3], attributes = fields[5];
    const int64_t delta = fields[6], producer_id = fields[9], epoch = fields[10], sequence = fields[11];
    const int64_t count = fields[12];
    if (length + LENGTH_COUNTS_FROM != size || magic != CURRENT_MAGIC || attributes < 0 || attributes >= ZSTD ||
        count != delta + 1 || count <= 0 || base_offset != 0 || (producer_id >= 0 && (sequence < 0 || epoch < 0)) ||
        count > RECORDS_MAX || count * RECORD_BYTES_MIN > (size - HEADER_BYTES) * expansion_max[attributes])
        Py_RETURN_NONE;
    int intact = checksum_is(batch + CRC_COVERS_FROM, size - CRC_COVERS_FROM, (uint32_t)fields[4]);
    if (intact < 0) return NULL;
    if (!intact) Py_RETURN_NONE;
    if (!attributes && (count > WALKED_RECORDS_MAX ||
                        !records_are_sound(batch + HEADER_BYTES, size - HEADER_BYTES, count, fields[7])))
        Py_RETURN_NONE;
    return header_tuple(fields);
}

/* Begin and end of the record set whose length stands at `length_at`, if the request ends behind it; 0 if not. */
static int find_records(const uint8_t *frame, Py_ssize_t length_at, Py_ssize_t end, int flexible, Py_ssize_t *begin,
                        Py_ssize_t *stop) {
    if (!flexible) {
        *begin = length_at + 4;
        *stop = *begin + get32(frame + length_at);
        return *stop == end;
    }
    uint64_t length = 0;
    Py_ssize_t at = length_at;
    for (int read = 0;; read++) {
        if (read == LENGTH_BYTES_MAX || at >= end) return 0;
        uint8_t byte = frame[at++];
        length |= (uint64_t)(byte & 0x7F) << (7 * read);
        if (byte < 0x80) break;
    }
    if (length > UINT32_MAX) return 0;
    *begin = at;
    *stop = at + (Py_ssize_t)length - 1;
    /* No tagged fields of the partition, the topic, the request. */
    return *stop + 3 == end && !frame[*stop] && !frame[*stop + 1] && !frame[*stop + 2];
}

static PyObject *repeat_in(const uint8_t *buffer, Py_ssize_t position, Py_ssize_t end, PyObject *shapes,
                           Py_ssize_t shape_bytes) {
    if (shape_bytes > end) Py_RETURN_NONE; /* so that the sum is not too large */
    Py_ssize_t start = position + SIZE_BYTES, length_at = start + shape_bytes, begin, stop;
    if (shape_bytes < SHAPE_AT || length_at + LEAST_BEHIND_SHAPE > end) Py_RETURN_NONE;
    PyObject *key = PyBytes_FromStringAndSize((const char *)buffer + start + SHAPE_AT, shape_bytes - SHAPE_AT);
    if (key == NULL) return NULL;
    PyObject *shape = PyDict_GetItemWithError(shapes, key);
    Py_DECREF(key);
    if (shape == NULL) {
        if (PyErr_Occurred()) return NULL;
        Py_RETURN_NONE;
    }
    int32_t key_and_version = get32(buffer + start), correlation_id = get32(buffer + start + 4);
    Py_ssize_t request_end = start + get32(buffer + position);
    if (length_at + LEAST_BEHIND_SHAPE > request_end || request_end > end ||
        !find_records(buffer, length_at, request_end, key_and_version >= FLEXIBLE_FROM, &begin, &stop))
        Py_RETURN_NONE;
    Py_INCREF(shape);
    PyObject *header = plain_header(buffer + begin, stop - begin);
    if (header == NULL) {
        Py_DECREF(shape);
        return NULL;
    }
    PyObject *repeat = PyTuple_New(7);
    if (repeat == NULL) {
        Py_DECREF(shape);
        Py_DECREF(header);
        return NULL;
    }
    PyTuple_SET_ITEM(repeat, 0, shape);
    PyTuple_SET_ITEM(repeat, 1, PyLong_FromLong(key_and_version));
    PyTuple_SET_ITEM(repeat, 2, PyLong_FromLong(correlation_id));
    PyTuple_SET_ITEM(repeat, 3, PyLong_FromSsize_t(begin));
    PyTuple_SET_ITEM(repeat, 4, PyLong_FromSsize_t(stop));
    PyTuple_SET_ITEM(repeat, 5, header);
    PyTuple_SET_ITEM(repeat, 6, PyLong_FromSsize_t(request_end));
    if (PyErr_Occurred()) Py_CLEAR(repeat);
    return repeat;
}

static PyObject *read_repeat(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    if (count != 5 || !PyDict_Check(arguments[3])) {
        PyErr_SetString(PyExc_TypeError, "read_repeat(buffer, position, end, shapes, shape_bytes)");
        return NULL;
    }
    Py_ssize_t position = PyLong_AsSsize_t(arguments[1]), end = PyLong_AsSsize_t(arguments[2]);
    Py_ssize_t shape_bytes = PyLong_AsSsize_t(arguments[4]);
    if (PyErr_Occurred()) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE)) return NULL;
    PyObject *repeat = NULL;
    if (position < 0 || position > view.len || end > view.len)
        PyErr_SetString(PyExc_IndexError, "the request is not within the buffer");
    else
        repeat = repeat_in(view.buf, position, end, arguments[3], shape_bytes);
    PyBuffer_Release(&view);
    return repeat;
}

/* `are_sound_plainly` of records/walk.py. */
static PyObject *are_sound(PyObject *module, PyObject *const *arguments, Py_ssize_t argument_count) {
    (void)module;
    if (argument_count != 3) {
        PyErr_SetString(PyExc_TypeError, "are_sound(plain, count, base_timestamp)");
        return NULL;
    }
    int64_t count = PyLong_AsLongLong(arguments[1]), base_timestamp = PyLong_AsLongLong(arguments[2]);
    if (PyErr_Occurred()) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE)) return NULL;
    int sound;
    if (count <= WALKED_WITH_OTHERS_MAX) {
        sound = records_are_sound(view.buf, view.len, count, base_timestamp);
    } else {
        Py_BEGIN_ALLOW_THREADS
        sound = records_are_sound(view.buf, view.len, count, base_timestamp);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&view);
    return PyBool_FromLong(sound);
}

/* `walk_batches_plainly` of records/batch_walk.py. */
static PyObject *walk_batches(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    (void)module;
    struct walk_bounds bounds;
    if (count != 2 || !PyTuple_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "walk_batches(batches, bounds)");
        return NULL;
    }
    if (!read_bounds(arguments[1], &bounds)) return NULL;
    Py_buffer view;
    if (PyObject_GetBuffer(arguments[0], &view, PyBUF_SIMPLE)) return NULL;
    PyObject *walked = walk_of(view.buf, view.len, bounds);
    PyBuffer_Release(&view);
    return walked;
}

static PyMethodDef methods[] = {
    {"are_sound", (PyCFunction)(void (*)(void))are_sound, METH_FASTCALL, NULL},
    {"read_repeat", (PyCFunction)(void (*)(void))read_repeat, METH_FASTCALL, NULL},
    {"walk_batches", (PyCFunction)(void (*)(void))walk_batches, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__compiled(void) {
    PyObject *checksum = PyImport_ImportModule("headrace.wire.checksum");
    if (checksum == NULL) return NULL;
    crc32c = PyObject_GetAttrString(checksum, "crc32c");
    Py_DECREF(checksum);
    return crc32c == NULL ? NULL : PyModule_Create(&definition);
}
