// SPDX-License-Identifier: MIT OR GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "doctor.h"

struct check *check_add(struct checks *c, const char *name, unsigned int need)
{
	struct check *k = &c->v[c->n < CHECKS_MAX ? c->n++ : CHECKS_MAX - 1];

	*k = (struct check){ .name = name, .need = need };
	return k;
}

void check_set(struct check *k, enum check_state state, const char *fmt, ...)
{
	va_list ap;

	k->state = state;
	va_start(ap, fmt);
	vsnprintf(k->text, sizeof(k->text), fmt, ap);
	va_end(ap);
}

void check_fix(struct check *k, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(k->fix, sizeof(k->fix), fmt, ap);
	va_end(ap);
}

size_t doctor_run(struct check checks[CHECKS_MAX])
{
	struct checks c = { .v = checks };

	doctor_kernel(&c);
	doctor_module(&c);
	doctor_rights(&c);
	doctor_hardware(&c);
	doctor_gpu(&c);
	doctor_rdma(&c);
	return c.n;
}
