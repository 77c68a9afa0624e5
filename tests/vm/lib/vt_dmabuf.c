// SPDX-License-Identifier: MIT OR GPL-2.0
#include "vt.h"
#include "vt_dmabuf.h"

#include <sys/stat.h>
#include <sys/syscall.h>

int vt_export(int fd, uint32_t area, struct rgate_export *out)
{
	struct rgate_export arg = { .area = area };

	if (ioctl(fd, RGATE_IOC_EXPORT, &arg))
		return -errno;
	if (out)
		*out = arg;
	return arg.fd;
}

int vt_exported(int fd, uint32_t area)
{
	int buf = vt_export(fd, area, NULL);

	if (buf < 0)
		DIE("EXPORT of area %u: %s", area, strerror(-buf));
	return buf;
}

bool vt_same_file(int a, int b)
{
	struct stat sa, sb;

	REQUIRE(!fstat(a, &sa) && !fstat(b, &sb));
	return sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

void vt_importer_load(void)
{
	const char *ko = getenv("RGATE_KO"), *end = ko ? strrchr(ko, '/') : NULL;
	char path[512];
	int fd;

	if (!end)
		return;
	snprintf(path, sizeof(path), "%.*s/rgate_import.ko", (int)(end - ko), ko);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (syscall(SYS_finit_module, fd, "", 0))
		vt_note("%s: %s", path, strerror(errno));
	else
		VT_UNTIL(!access(IMPORT_DEVICE, R_OK | W_OK), 3000);
	close(fd);
}

void vt_importer_unload(void)
{
	syscall(SYS_delete_module, "rgate_import", O_NONBLOCK);
}

int vt_importer(void)
{
	int fd = open(IMPORT_DEVICE, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		vt_skip("no module that imports: %s", strerror(errno));
	return fd;
}

int vt_import(int importer, int buf, unsigned int dir, struct import_arg *out)
{
	struct import_arg arg = { .fd = buf, .dir = dir };

	if (ioctl(importer, IMPORT_MAP, &arg))
		return -errno;
	if (out)
		*out = arg;
	return 0;
}

int vt_import_do(int importer, unsigned long what, uint64_t off, void *data)
{
	struct import_arg arg = { .off = off };

	memcpy(arg.data, data, IMPORT_DATA);
	if (ioctl(importer, what, &arg))
		return -errno;
	memcpy(data, arg.data, IMPORT_DATA);
	return 0;
}
