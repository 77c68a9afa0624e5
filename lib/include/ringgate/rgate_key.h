/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * The key pairs of nodes, X25519, written as WireGuard writes them: 32 bytes as one line
 * of base64. A node's private key stays on its machine; the cluster file has every node's
 * public key. `ringgate cluster keygen` makes both. Documentation/cluster.rst
 */
#ifndef RINGGATE_RGATE_KEY_H
#define RINGGATE_RGATE_KEY_H

#include <ringgate/rgate.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RGATE_KEY_LEN	32	/* bytes, of a private and of a public key */
#define RGATE_KEY_TEXT	45	/* the same in base64, with the NUL */

/*
 * rgate_key_generate - makes a private key of the kernel's random bytes
 * @key: out: clamped as X25519 wants it, so that its text is what any tool shows of it
 * Return: 0; -EIO: no random bytes. Thread-safe.
 */
RGATE_API int rgate_key_generate(uint8_t key[RGATE_KEY_LEN]);

/*
 * rgate_key_public - the public key that belongs to a private one
 * @pub: out
 * @key: the private key, clamped or not
 * Return: 0; -ENOMEM, -EIO: libcrypto does not do it. Thread-safe.
 */
RGATE_API int rgate_key_public(uint8_t pub[RGATE_KEY_LEN], const uint8_t key[RGATE_KEY_LEN]);

/*
 * rgate_key_to_text - base64, 44 characters
 * @text: out; as secret as @key
 * @key: either
 * Thread-safe.
 */
RGATE_API void rgate_key_to_text(char text[RGATE_KEY_TEXT], const uint8_t key[RGATE_KEY_LEN]);

/*
 * rgate_key_from_text - the bytes of a key in base64
 * @key: out; untouched on failure
 * @text: 44 characters and nothing else, in the only spelling that these bytes have
 * Return: 0; -EINVAL: it is something else. Thread-safe.
 */
RGATE_API int rgate_key_from_text(uint8_t key[RGATE_KEY_LEN], const char *text);

/*
 * rgate_key_load - reads a private key from its file
 * @key: out; untouched on failure. Who calls wipes it after use.
 * @path: a regular file of root or of the caller's effective user, of mode 0600 or less,
 *	with one line of base64. What is checked is the file that is read: it is opened once.
 * Return: 0; -EACCES: others may read or write it, or it is somebody else's; -EINVAL: no
 * regular file, or no key in it; -ENOENT, -EACCES, ...: cannot be opened. The log says
 * which file it is and what to do. Thread-safe.
 */
RGATE_API int rgate_key_load(uint8_t key[RGATE_KEY_LEN], const char *path);

#ifdef __cplusplus
}
#endif
#endif
