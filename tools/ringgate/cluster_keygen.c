// SPDX-License-Identifier: MIT OR GPL-2.0
/* ringgate cluster keygen, pubkey: as `wg genkey` and `wg pubkey`, and into its place. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ringgate/rgate_key.h>

#include "cluster.h"
#include "cmd.h"
#include "number.h"
#include "util.h"

struct keygen_args {
	const char *file;
	const char *cluster;
	const char *node;
	bool force;
};

/* A key as text, and wiped when done */
static int print_private(void)
{
	char text[RGATE_KEY_TEXT];
	uint8_t key[RGATE_KEY_LEN];
	struct stat st;
	int err;

	if (!fstat(STDOUT_FILENO, &st) && S_ISREG(st.st_mode) && st.st_mode & 077)
		say("others may read the file that the key goes to: `chmod 600` it, and `umask 077` next time");
	err = rgate_key_generate(key);
	if (err)
		return fail(err, "cannot make a key");
	rgate_key_to_text(text, key);
	/* no copy of the key in stdio's buffer */
	setvbuf(stdout, NULL, _IONBF, 0);
	puts(text);
	explicit_bzero(text, sizeof(text));
	explicit_bzero(key, sizeof(key));
	return EXIT_OK;
}

/* Into @fd, a new file at @path, which does not stay if that fails */
static int put(int fd, const char *path, const uint8_t key[RGATE_KEY_LEN])
{
	char text[RGATE_KEY_TEXT];
	int err = 0;

	rgate_key_to_text(text, key);
	text[RGATE_KEY_TEXT - 1] = '\n';
	/* of a write that is cut short */
	errno = ENOSPC;
	if (write(fd, text, sizeof(text)) != sizeof(text) || fsync(fd) < 0)
		err = -errno;
	explicit_bzero(text, sizeof(text));
	if (close(fd) < 0 && !err)
		err = -errno;
	if (err)
		(void)unlink(path);
	return err;
}

static int write_new(const char *path, const uint8_t key[RGATE_KEY_LEN])
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : put(fd, path, key);
}

/* The old key is there until the new one is whole. */
static int write_over(const char *path, const uint8_t key[RGATE_KEY_LEN])
{
	char new[PATH_MAX];
	int fd, err;

	if (snprintf(new, sizeof(new), "%s.XXXXXX", path) >= (int)sizeof(new))
		return -ENAMETOOLONG;
	fd = mkostemp(new, O_CLOEXEC);	/* of mode 0600 */
	if (fd < 0)
		return -errno;
	err = put(fd, new, key);
	if (!err && rename(new, path) < 0) {
		err = -errno;
		(void)unlink(new);
	}
	return err;
}

/* A new private key in @path; @pub: out, what belongs to it */
static int make(const char *path, bool force, uint8_t pub[RGATE_KEY_LEN])
{
	uint8_t key[RGATE_KEY_LEN];
	int err;

	err = rgate_key_generate(key);
	if (!err)
		err = rgate_key_public(pub, key);
	if (err)
		return fail(err, "cannot make a key");
	err = (force ? write_over : write_new)(path, key);
	explicit_bzero(key, sizeof(key));
	if (err == -EEXIST) {
		say("%s is there already: `ringgate cluster pubkey <%s` prints its public key, and --force makes a new one",
		    path, path);
		return EXIT_FAIL;
	}
	return err ? fail_in(WHY_WRITE, err, "cannot write %s", path) : EXIT_OK;
}

static void print_public(const char *id, const uint8_t pub[RGATE_KEY_LEN])
{
	char text[RGATE_KEY_TEXT];

	rgate_key_to_text(text, pub);
	printf("public-key %s %s\n", id, text);
}

static int into_file(const struct keygen_args *a)
{
	uint8_t pub[RGATE_KEY_LEN];
	uint64_t id;
	int ret;

	if (a->node && number_parse(a->node, false, 0, RGATE_NODES_MAX - 1, &id)) {
		say("--node: '%s' is no number from 0 to %d, and only the cluster file knows names",
		    a->node, RGATE_NODES_MAX - 1);
		return EXIT_USAGE;
	}
	ret = make(a->file, a->force, pub);
	if (ret != EXIT_OK)
		return ret;
	print_public(a->node ? a->node : "ID", pub);
	if (!a->node)
		say("the number of the node is to stand for ID, in the cluster file");
	return EXIT_OK;
}

/* @pub is new: what the file says of node @n may be of an older key. */
static void compare(const char *path, const struct rgate_cluster_node *n,
		    const uint8_t pub[RGATE_KEY_LEN])
{
	const bool has_key = cluster_has_key(n);

	if (has_key && memcmp(n->public_key, pub, sizeof(n->public_key)))
		say("%s has another public key of node %u: this line takes its place, on every node",
		    path, n->id);
	else if (!has_key && isatty(STDOUT_FILENO))
		say("this line belongs into %s, on every node", path);
}

static int into_place(const struct keygen_args *a)
{
	const char *path = cluster_path(a->cluster);
	struct rgate_cluster_node node;
	struct rgate_cluster *cluster;
	uint8_t pub[RGATE_KEY_LEN];
	char place[PATH_MAX], id[8];
	int ret;

	ret = cluster_load(&cluster, a->cluster);
	if (ret != EXIT_OK)
		return ret;
	if (cluster_self(cluster, a->node, &node)) {
		if (a->node)
			say("the cluster has no node '%s'", a->node);
		else
			say("which node's key? --node NODE, or RGATE_NODE in the environment");
		ret = EXIT_USAGE;
		goto free_cluster;
	}
	ret = rgate_cluster_key_path(cluster, node.id, place, sizeof(place));
	if (ret) {
		ret = fail(ret, "no place for the key of node %u", node.id);
		goto free_cluster;
	}
	ret = make(place, a->force, pub);
	if (ret != EXIT_OK)
		goto free_cluster;
	snprintf(id, sizeof(id), "%u", node.id);
	print_public(id, pub);
	compare(path, &node, pub);

free_cluster:
	rgate_cluster_destroy(cluster);
	return ret;
}

static error_t parse_keygen(int key, char *arg, struct argp_state *state)
{
	struct keygen_args *a = state->input;

	switch (key) {
	case 'C':
		a->cluster = arg;
		break;
	case 'n':
		a->node = arg;
		break;
	case 'f':
		a->force = true;
		break;
	case ARGP_KEY_ARG:
		if (a->file)
			argp_error(state, "'%s' is one file too many", arg);
		a->file = arg;
		break;
	case ARGP_KEY_END:
		if (a->file && a->cluster)
			argp_error(state, "FILE and --cluster, which says where the key goes, exclude each other");
		if (a->force && !a->file && !a->cluster && !a->node)
			argp_error(state, "--force goes with a file");
		break;
	default:
		return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

int cluster_keygen(int argc, char **argv)
{
	static const struct argp_option options[] = {
		{ "cluster", 'C', "FILE", 0, "The cluster's file, which says where keys are", 0 },
		{ "node", 'n', "NODE", 0, "Whose key (default: the node of this machine)", 0 },
		{ "force", 'f', NULL, 0, "Over a key that is there", 0 },
		{ 0 }
	};
	static const struct argp argp = {
		.options = options,
		.parser = parse_keygen,
		.args_doc = "\nFILE [--node ID]\n--node NODE [--cluster FILE]",
		.doc = "Makes a private key: prints it, or writes it to FILE or to where the "
		       "cluster file says that of NODE is. Of a key that is written the line "
		       "`public-key ID KEY` is printed, which belongs into the cluster file.",
	};
	struct keygen_args a = { 0 };

	cmd_parse(&argp, argc, argv, &a);
	if (a.file)
		return into_file(&a);
	return a.cluster || a.node ? into_place(&a) : print_private();
}

/* One key, and nothing behind it but a newline */
static int read_private(uint8_t key[RGATE_KEY_LEN])
{
	char text[RGATE_KEY_TEXT + 2];
	size_t n = fread(text, 1, sizeof(text) - 1, stdin);
	int err;

	if (n && text[n - 1] == '\n')
		n--;
	text[n] = '\0';
	err = strlen(text) == n ? rgate_key_from_text(key, text) : -EINVAL;
	explicit_bzero(text, sizeof(text));
	return err;
}

static error_t parse_pubkey(int key, char *arg, struct argp_state *state)
{
	if (key != ARGP_KEY_ARG)
		return ARGP_ERR_UNKNOWN;
	argp_error(state, "'%s' is not expected: `ringgate cluster pubkey <%s`", arg, arg);
	return 0;
}

int cluster_pubkey(int argc, char **argv)
{
	static const struct argp argp = {
		.parser = parse_pubkey,
		.doc = "Reads a private key from standard input, and prints its public key.",
	};
	uint8_t key[RGATE_KEY_LEN], pub[RGATE_KEY_LEN];
	char text[RGATE_KEY_TEXT];
	int err;

	cmd_parse(&argp, argc, argv, NULL);
	/* no copy of the key in stdio's buffer */
	setvbuf(stdin, NULL, _IONBF, 0);
	if (read_private(key)) {
		say("standard input is no private key, which is one line of %d characters: `ringgate cluster pubkey <FILE`",
		    RGATE_KEY_TEXT - 1);
		return EXIT_FAIL;
	}
	err = rgate_key_public(pub, key);
	explicit_bzero(key, sizeof(key));
	if (err)
		return fail(err, "cannot make the public key");
	rgate_key_to_text(text, pub);
	puts(text);
	return EXIT_OK;
}
