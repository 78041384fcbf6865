#pragma once

// Value<T>: how a type of the user's own becomes bytes.
#include "core/values/value.h"
