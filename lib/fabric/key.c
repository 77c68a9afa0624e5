// SPDX-License-Identifier: MIT OR GPL-2.0
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/rgate_key.h>

#include "log.h"

#define TEXT_LEN	(RGATE_KEY_TEXT - 1)

int rgate_key_generate(uint8_t key[RGATE_KEY_LEN])
{
	/* So few bytes come whole, and no signal comes between. */
	if (getrandom(key, RGATE_KEY_LEN, 0) != RGATE_KEY_LEN)
		return -EIO;
	key[0] &= 248;
	key[31] = (key[31] & 127) | 64;
	return 0;
}

int rgate_key_public(uint8_t pub[RGATE_KEY_LEN], const uint8_t key[RGATE_KEY_LEN])
{
	EVP_PKEY *pair;
	size_t len = RGATE_KEY_LEN;
	int err = 0;

	pair = EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, NULL, key, RGATE_KEY_LEN);
	if (!pair)
		return -ENOMEM;
	if (EVP_PKEY_get_raw_public_key(pair, pub, &len) != 1 || len != RGATE_KEY_LEN)
		err = -EIO;
	EVP_PKEY_free(pair);
	return err;
}

void rgate_key_to_text(char text[RGATE_KEY_TEXT], const uint8_t key[RGATE_KEY_LEN])
{
	EVP_EncodeBlock((unsigned char *)text, key, RGATE_KEY_LEN);
}

int rgate_key_from_text(uint8_t key[RGATE_KEY_LEN], const char *text)
{
	uint8_t bytes[TEXT_LEN / 4 * 3];
	char again[RGATE_KEY_TEXT];
	int err = -EINVAL;

	if (!text || strnlen(text, RGATE_KEY_TEXT) != TEXT_LEN)
		return -EINVAL;
	/*
	 * EVP_DecodeBlock() takes more than one spelling: '=' anywhere, blanks at the ends,
	 * and any value of the bits that are left over.
	 */
	if (EVP_DecodeBlock(bytes, (const unsigned char *)text, TEXT_LEN) == (int)sizeof(bytes)) {
		rgate_key_to_text(again, bytes);
		if (!CRYPTO_memcmp(again, text, TEXT_LEN)) {
			memcpy(key, bytes, RGATE_KEY_LEN);
			err = 0;
		}
	}
	OPENSSL_cleanse(bytes, sizeof(bytes));
	OPENSSL_cleanse(again, sizeof(again));
	return err;
}

/* Anybody else who can write the file knows the key, as does who can read it. */
static int check_file(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		rgate_err("%s is no regular file, so no private key: `ringgate cluster keygen FILE` makes one",
			  path);
		return -EINVAL;
	}
	if (st.st_uid && st.st_uid != geteuid()) {
		rgate_err("%s holds a private key and belongs to user %u: `chown root %s`", path,
			  st.st_uid, path);
		return -EACCES;
	}
	if (st.st_mode & 077) {
		rgate_err("%s holds a private key, and others than its owner have access: `chmod 600 %s`",
			  path, path);
		return -EACCES;
	}
	return 0;
}

static int read_line(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	if (len == size || memchr(text, '\0', len))
		return -EINVAL;
	if (len && text[len - 1] == '\n')
		len--;
	text[len] = '\0';
	return 0;
}

static int take_key(uint8_t key[RGATE_KEY_LEN], int fd, const char *path)
{
	/* One more than a key and its newline: so a longer file is seen. */
	char text[TEXT_LEN + 2];
	int err;

	err = check_file(fd, path);
	if (err)
		return err;
	err = read_line(fd, text, sizeof(text));
	if (!err)
		err = rgate_key_from_text(key, text);
	OPENSSL_cleanse(text, sizeof(text));
	if (err == -EINVAL)
		rgate_err("%s holds no private key, which is one line of %d characters: remove it, and `ringgate cluster keygen %s`",
			  path, TEXT_LEN, path);
	else if (err)
		rgate_err("cannot read the private key %s: %s", path, strerror(-err));
	return err;
}

int rgate_key_load(uint8_t key[RGATE_KEY_LEN], const char *path)
{
	int fd, err;

	if (!key || !path)
		return -EINVAL;
	/* Not waiting for who writes a FIFO */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		err = -errno;
		if (err == -ENOENT)
			rgate_err("there is no private key %s: `ringgate cluster keygen %s` makes one",
				  path, path);
		else
			rgate_err("cannot read the private key %s: %s", path, strerror(-err));
		return err;
	}
	err = take_key(key, fd, path);
	close(fd);
	return err;
}
