// SPDX-License-Identifier: MIT OR GPL-2.0
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/rgate_cluster.h>

#include "handshake.h"
#include "log.h"

#define MAGIC		0x48534752U	/* "RGSH" */
#define VERSION		1
#define MESSAGE_MIN	64U
#define MESSAGE_MAX	65536U
#define DEPTH_MIN	4U
#define DEPTH_MAX	4096U

_Static_assert(sizeof(struct rgate_hs_hello) == 56, "as rdma_cm has room");
_Static_assert(sizeof(struct rgate_hs_welcome) == 128, "RGATE_PROV_WELCOME");

int rgate_hs_hello(struct rgate_hs_hello *hello, uint8_t from, uint8_t to, uint64_t incarnation,
		   uint32_t msg_size, uint32_t msg_depth)
{
	*hello = (struct rgate_hs_hello){
		.magic = htole32(MAGIC), .version = htole16(VERSION), .from = from, .to = to,
		.incarnation = htole64(incarnation), .msg_size = htole32(msg_size),
		.msg_depth = htole32(msg_depth),
	};
	return getrandom(hello->nonce, sizeof(hello->nonce), 0) == sizeof(hello->nonce) ? 0 : -EIO;
}

int rgate_hs_read_hello(struct rgate_hs_hello *hello, const void *buf, size_t len, int from, int to)
{
	static const uint8_t zero[sizeof(hello->reserved)];
	uint32_t size, depth;

	if (len < sizeof(*hello))
		return -EPROTO;
	memcpy(hello, buf, sizeof(*hello));
	if (le32toh(hello->magic) != MAGIC)
		return -EPROTO;
	if (le16toh(hello->version) != VERSION)
		return -EPROTONOSUPPORT;
	size = le32toh(hello->msg_size);
	depth = le32toh(hello->msg_depth);
	if (hello->to != to || hello->from == to || hello->from >= RGATE_NODES_MAX ||
	    (from >= 0 && hello->from != from) || size < MESSAGE_MIN || size > MESSAGE_MAX ||
	    depth < DEPTH_MIN || depth > DEPTH_MAX ||
	    memcmp(hello->reserved, zero, sizeof(zero)))
		return -EPROTO;
	return 0;
}

static const char server[8] = "server", client[8] = "client";

/* HMAC-SHA256 over who speaks, the hello, and @len bytes of the welcome */
static int sign(uint8_t mac[RGATE_HS_MAC], const char who[8], const struct rgate_hs_hello *hello,
		const struct rgate_hs_welcome *welcome, size_t len, const void *key,
		size_t key_len)
{
	uint8_t text[8 + sizeof(*hello) + sizeof(*welcome)];
	unsigned int n = RGATE_HS_MAC;

	memcpy(text, who, 8);
	memcpy(text + 8, hello, sizeof(*hello));
	memcpy(text + 8 + sizeof(*hello), welcome, len);
	return HMAC(EVP_sha256(), key, (int)key_len, text, 8 + sizeof(*hello) + len, mac, &n) &&
	       n == RGATE_HS_MAC ? 0 : -EIO;
}

int rgate_hs_welcome(struct rgate_hs_welcome *welcome, const struct rgate_hs_hello *hello,
		     const struct rgate_hs_hello *own, const void *key, size_t key_len)
{
	*welcome = (struct rgate_hs_welcome){ .hello = *own };
	return sign(welcome->mac, server, hello, welcome, sizeof(*own), key, key_len);
}

int rgate_hs_read_welcome(struct rgate_hs_welcome *welcome, const void *buf, size_t len,
			  const struct rgate_hs_hello *hello, const void *key, size_t key_len)
{
	static const uint8_t zero[sizeof(welcome->reserved)];
	uint8_t mac[RGATE_HS_MAC];
	int err;

	if (len < sizeof(*welcome))
		return -EPROTO;
	memcpy(welcome, buf, sizeof(*welcome));
	err = rgate_hs_read_hello(&welcome->hello, buf, sizeof(welcome->hello), hello->to,
				  hello->from);
	if (err)
		return err;
	if (memcmp(welcome->reserved, zero, sizeof(zero)))
		return -EPROTO;
	err = sign(mac, server, hello, welcome, sizeof(welcome->hello), key, key_len);
	if (!err && CRYPTO_memcmp(mac, welcome->mac, sizeof(mac)))
		err = -EACCES;
	return err;
}

int rgate_hs_proof(struct rgate_hs_proof *proof, const struct rgate_hs_hello *hello,
		   const struct rgate_hs_welcome *welcome, const void *key, size_t key_len)
{
	return sign(proof->mac, client, hello, welcome, sizeof(*welcome), key, key_len);
}

int rgate_hs_check_proof(const void *buf, size_t len, const struct rgate_hs_hello *hello,
			 const struct rgate_hs_welcome *welcome, const void *key, size_t key_len)
{
	struct rgate_hs_proof proof;
	int err;

	err = rgate_hs_proof(&proof, hello, welcome, key, key_len);
	if (!err && (len != sizeof(proof) || CRYPTO_memcmp(proof.mac, buf, sizeof(proof))))
		err = -EACCES;
	OPENSSL_cleanse(&proof, sizeof(proof));
	return err;
}

static ssize_t read_all(int fd, uint8_t *buf, size_t cap)
{
	size_t len = 0;
	ssize_t n;

	while (len < cap) {
		n = read(fd, buf + len, cap - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int take_key(int fd, const char *path, uint8_t *key, size_t cap)
{
	uint8_t buf[RGATE_KEY_MAX + 2];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_mode & 077) {
		rgate_err("%s holds the cluster's key, and others may read it: `chmod 600 %s`",
			  path, path);
		return -EACCES;
	}
	n = read_all(fd, buf, sizeof(buf));
	if (n > 0 && buf[n - 1] == '\n')
		n--;
	if (n >= 0 && (n < RGATE_KEY_MIN || n > RGATE_KEY_MAX || (size_t)n > cap)) {
		rgate_err("%s has %zd bytes, and a cluster key %d to %d: copy it from another node "
			  "again", path, n, RGATE_KEY_MIN, RGATE_KEY_MAX);
		n = -EINVAL;
	}
	if (n > 0)
		memcpy(key, buf, (size_t)n);
	OPENSSL_cleanse(buf, sizeof(buf));
	return (int)n;
}

int rgate_hs_load_key(const char *path, uint8_t *key, size_t cap)
{
	int fd, n;

	if (!path) {
		rgate_err("the cluster file names no key: `key /etc/ringgate/cluster.key`");
		return -ENOENT;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		n = -errno;
		/* A command that makes one is for where there is none: it would overwrite. */
		if (n == -ENOENT)
			rgate_err("there is no cluster key %s: copy that of another node, or for a "
				  "new cluster `(umask 077; openssl rand -hex 32 >%s)`",
				  path, path);
		else
			rgate_err("cannot read the cluster key %s: %s", path, strerror(-n));
		return n;
	}
	n = take_key(fd, path, key, cap);
	close(fd);
	return n;
}
