#pragma once

// CallContext: what a function that is being served knows and can do.
#include "core/rref/call_context.h"
