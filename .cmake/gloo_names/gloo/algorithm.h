#pragma once
// Nothing of it is named by c10d's header: see context.h.
