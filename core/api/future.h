#pragma once

// Future<T>, Promise<T>: values to come. when_all, collect_all, when_any: of several.
#include "core/base/future.h"
#include "core/base/future_groups.h"
