// SPDX-License-Identifier: MIT OR GPL-2.0
#define _GNU_SOURCE
#include "exe.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPTS_MAX	4	/* that one may be run by another one, as the kernel has it */
#define HEAD		256	/* bytes of a script's first line */
#define HEADERS_MAX	1024U	/* of an ELF file; those that there are have about ten */

#if defined(__x86_64__)
#define OWN_MACHINE	EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE	EM_AARCH64
#else
#define OWN_MACHINE	EM_NONE
#endif

static bool may_run(const char *path, char found[PATH_MAX])
{
	if (access(path, X_OK))
		return false;
	(void)snprintf(found, PATH_MAX, "%s", path);
	return true;
}

static bool look_up(const char *name, char found[PATH_MAX])
{
	const char *at = getenv("PATH"), *end;
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return may_run(name, found);
	for (at = at ? at : "/bin:/usr/bin"; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ':');
		(void)snprintf(path, sizeof(path), "%.*s%s%s", (int)(end - at), at,
			       end > at ? "/" : "", name);
		if (may_run(path, found))
			return true;
	}
	return false;
}

/* Does it name who loads it? Also if that cannot be read: then nothing else can be done with it. */
static bool has_loader(int fd, const Elf64_Ehdr *e)
{
	Elf64_Phdr p;
	unsigned int i;

	for (i = 0; i < e->e_phnum && i < HEADERS_MAX; i++) {
		const off_t at = (off_t)(e->e_phoff + (uint64_t)i * e->e_phentsize);

		if (e->e_phentsize < sizeof(p) || pread(fd, &p, sizeof(p), at) != sizeof(p) ||
		    p.p_type == PT_INTERP)
			return true;
	}
	return false;
}

/* The name behind "#!" */
static bool is_script(const char *head, char name[HEAD])
{
	const char *at = head + 2;
	size_t len;

	if (strncmp(head, "#!", 2))
		return false;
	at += strspn(at, " \t");
	len = strcspn(at, " \t\n");
	memcpy(name, at, len);
	name[len] = '\0';
	return len > 0;
}

static bool is_static(int fd, const char *head, ssize_t len)
{
	Elf64_Ehdr e;

	if (len < (ssize_t)sizeof(e) || memcmp(head, ELFMAG, SELFMAG))
		return false;
	memcpy(&e, head, sizeof(e));
	return e.e_ident[EI_CLASS] == ELFCLASS64 && e.e_machine == OWN_MACHINE &&
	       !has_loader(fd, &e);
}

bool exe_is_static(const char *name)
{
	char path[PATH_MAX], head[HEAD], script[HEAD];
	bool more = look_up(name, path), is = false;
	ssize_t n;
	int i, fd;

	for (i = 0; more && i <= SCRIPTS_MAX; i++) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
		memset(head, 0, sizeof(head));
		n = read(fd, head, sizeof(head) - 1);
		is = is_static(fd, head, n);
		close(fd);
		more = n > 0 && is_script(head, script) && may_run(script, path);
	}
	return is;
}
