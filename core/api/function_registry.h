#pragma once

// FunctionRegistry: what may be called.
#include "core/functions/function_registry.h"
