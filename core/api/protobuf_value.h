#pragma once

// Protobuf messages as arguments and results.
#include "core/values/protobuf_value.h"
