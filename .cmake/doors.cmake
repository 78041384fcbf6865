# The headers that a program includes, as <rehearsal/…>: those of core/api by their name alone
# (<rehearsal/worker.h>), the others below their folder (<rehearsal/sim/cluster.h>). In a build tree
# each is a file that includes the real one; `cmake --install` copies the real ones.
file(GLOB doors RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS core/api/*.h sim/*.h
     sim/oracles/*.h real_net/*.h command_line/command_line.h command_line/scenario.h
     command_line/options.h command_line/results.h command_line/wrong_use.h)
# The other libraries of a program link these.
foreach(library rehearsal_sim rehearsal_sim_device rehearsal_real_net)
  target_include_directories(${library} INTERFACE
                             $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>)
endforeach()
foreach(header IN LISTS doors)
  string(REGEX REPLACE "^core/api/" "" name ${header})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/rehearsal/${name}
       CONTENT "#pragma once\n#include \"${header}\"\n")
endforeach()
