/* SPDX-License-Identifier: MIT */
/* What of a rule the circuit's word is moved by. */
#ifndef SHUNT_CORE_POLICY_H
#define SHUNT_CORE_POLICY_H

#include "core/circuit.h"
#include "core/setting.h"

/* Every value within the circuit's ranges, whatever the settings hold. */
struct circuit_policy policy_of(const struct settings *settings);

/* What the end of a probe's call is to the circuit. */
enum probe_end policy_probe_end(const struct settings *settings, enum outcome outcome);

#endif
