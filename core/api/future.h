#pragma once

// Future<T>, Promise<T>, when_all, collect_all: values to come.
#include "core/base/future.h"
