#include "real_net/worker/placement.h"

#include <gtest/gtest.h>

#include <map>

namespace rehearsal::real {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Placement> place(const Variables& variables, const PlacementFlags& flags = {}) {
  return find_placement(flags, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

Variables plain() {
  return {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "1234"}};
}

void expect_error(const Result<Placement>& result, const std::string& part) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::bad_arguments);
  EXPECT_NE(result.error().text.find(part), std::string::npos) << result.error().text;
}

TEST(Placement, PlainVariables) {
  const Placement placement = place(plain()).or_throw();
  EXPECT_EQ(placement.launcher, "environment");
  EXPECT_EQ(placement.rank, 1u);
  EXPECT_EQ(placement.world_size, 3u);
  EXPECT_EQ(placement.master, (Address{"10.0.0.1", 1234}));
  EXPECT_FALSE(placement.agent_serves);
}

TEST(Placement, AnAddressOfIPv6MayHaveItsBracketsOrNot) {
  // Goal: what people write, and what others' launchers do. Method: both, in variable and URL.
  for (const char* host : {"::1", "[::1]"}) {
    Variables variables = plain();
    variables["MASTER_ADDR"] = host;
    EXPECT_EQ(place(variables).or_throw().master, (Address{"::1", 1234})) << host;
    const std::string url = "tcp://" + std::string(host) + ":77";
    EXPECT_EQ(place(plain(), {.rank = {}, .world_size = {}, .rendezvous = url}).or_throw().master,
              (Address{"::1", 77}))
        << url;
  }
}

TEST(Placement, TorchrunsAgentServesTheStoreAndRestartsAreToldApart) {
  Variables variables = plain();
  variables["TORCHELASTIC_RUN_ID"] = "run7";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_FALSE(place(variables).or_throw().agent_serves);
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const Placement placement = place(variables).or_throw();
  EXPECT_EQ(placement.launcher, "torchrun");
  EXPECT_TRUE(placement.agent_serves);
  EXPECT_EQ(placement.run, "run7/2");
}

TEST(Placement, TheFirstLauncherInTheOrderDecides) {
  Variables variables = plain();
  variables["JOB_COMPLETION_INDEX"] = "0";
  EXPECT_EQ(place(variables).or_throw().launcher, "Kubernetes");
  variables["OMPI_COMM_WORLD_RANK"] = "0";
  EXPECT_EQ(place(variables).or_throw().launcher, "MPI");
  variables["SLURM_PROCID"] = "0";
  variables["SLURM_NTASKS"] = "4";
  EXPECT_EQ(place(variables).or_throw().launcher, "Slurm");
  variables["TORCHELASTIC_RUN_ID"] = "run";
  EXPECT_EQ(place(variables).or_throw().launcher, "torchrun");
  EXPECT_EQ(place(variables, {.rank = 2}).or_throw().launcher, "flags");
}

TEST(Placement, SlurmNamesTheMasterItself) {
  const Placement placement = place({{"SLURM_PROCID", "5"},
                                     {"SLURM_NTASKS", "8"},
                                     {"SLURM_JOB_ID", "123456"},
                                     {"SLURM_JOB_NODELIST", "gpu[03-05,9],login"}})
                                  .or_throw();
  EXPECT_EQ(placement.rank, 5u);
  EXPECT_EQ(placement.world_size, 8u);
  EXPECT_EQ(placement.master, (Address{"gpu03", 23456}));
}

TEST(Placement, SlurmNodeLists) {
  EXPECT_EQ(first_slurm_host("alone"), "alone");
  EXPECT_EQ(first_slurm_host("one,two"), "one");
  EXPECT_EQ(first_slurm_host("n[7]"), "n7");
  EXPECT_EQ(first_slurm_host("n[007-012],m"), "n007");
  EXPECT_EQ(first_slurm_host("n[1,3-4]"), "n1");
}

TEST(Placement, MpiOnOneHostNeedsNoAddress) {
  const Placement placement = place({{"OMPI_COMM_WORLD_RANK", "1"},
                                     {"OMPI_COMM_WORLD_SIZE", "2"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})
                                  .or_throw();
  EXPECT_EQ(placement.world_size, 2u);
  EXPECT_EQ(placement.master, (Address{"127.0.0.1", 29500}));
  expect_error(place({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), "MASTER_ADDR");
}

TEST(Placement, FlagsWin) {
  const Placement placement =
      place(plain(), {.rank = 0, .world_size = 2, .rendezvous = "tcp://[::1]:77"}).or_throw();
  EXPECT_EQ(placement.rank, 0u);
  EXPECT_EQ(placement.world_size, 2u);
  EXPECT_EQ(placement.master, (Address{"::1", 77}));
  EXPECT_EQ(place({}, {.rank = 0, .rendezvous = "file:///tmp/x"}).or_throw().file, "/tmp/x");
}

TEST(Placement, ARunIsNamedByItsUserElseByItsLauncher) {
  // Goal: launches are told apart. Method: each source of an id, and the order among them.
  Variables variables = plain();
  EXPECT_EQ(place(variables).or_throw().run, "");
  variables["OMPI_COMM_WORLD_RANK"] = "1";
  variables["OMPI_MCA_ess_base_jobid"] = "77";
  EXPECT_EQ(place(variables).or_throw().run, "77");
  variables["PMIX_NAMESPACE"] = "5151";
  EXPECT_EQ(place(variables).or_throw().run, "5151");
  variables["REHEARSAL_RUN_ID"] = "mine";
  EXPECT_EQ(place(variables).or_throw().run, "mine");
  EXPECT_EQ(place(variables, {.rank = 0, .run_id = "flag"}).or_throw().run, "flag");
  variables["TORCHELASTIC_RUN_ID"] = "job";
  variables["TORCHELASTIC_RESTART_COUNT"] = "2";
  EXPECT_EQ(place(variables).or_throw().run, "mine/2") << "attempts of torchrun are not mixed";
  EXPECT_EQ(place(variables, {.rank = 0, .run_id = "flag"}).or_throw().run, "flag");
}

TEST(Placement, ALauncherOfManyRanksIsKnownByItsVariables) {
  // Goal: a command that starts a cluster itself notices that it was started many times. Method:
  // the variables of each launcher, and those of a single process under one.
  const auto many = [](const Variables& variables) -> std::string {
    const auto found = launched_as_one_of_many([&](const std::string& name) {
      const auto at = variables.find(name);
      return at == variables.end() ? std::nullopt : std::optional(at->second);
    });
    return found ? found->launcher + " " + std::to_string(found->count) : "no";
  };
  EXPECT_EQ(many(plain()), "no");
  EXPECT_EQ(many({{"TORCHELASTIC_RUN_ID", "none"}, {"WORLD_SIZE", "3"}}), "torchrun 3");
  EXPECT_EQ(many({{"TORCHELASTIC_RUN_ID", "none"}, {"WORLD_SIZE", "1"}}), "no");
  EXPECT_EQ(many({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}), "srun 4");
  EXPECT_EQ(many({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}), "no") << "a batch script";
  EXPECT_EQ(many({{"OMPI_COMM_WORLD_SIZE", "2"}}), "mpirun 2");
  EXPECT_EQ(many({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), "mpirun 2");
}

// Rows: rpc_test::TensorPipeAgentRpcTest.test_dynamic_rpc_init_rpc_without_rank
TEST(Placement, WhatIsMissingOrWrongIsNamed) {
  expect_error(place({}), "RANK is not set");
  Variables variables = plain();
  variables["RANK"] = "one";
  expect_error(place(variables), "RANK is 'one'");
  variables["RANK"] = "3";
  expect_error(place(variables), "rank 3 is not below");
  variables = plain();
  variables["MASTER_PORT"] = "70000";
  expect_error(place(variables), "MASTER_PORT");
  variables.erase("MASTER_ADDR");
  expect_error(place(variables), "MASTER_ADDR is not set");
  for (const char* url :
       {"http://x:1", "tcp://x", "tcp://:5", "tcp://x:0", "tcp://x:99999", "file://"})
    expect_error(place(plain(), {.rendezvous = url}), url);
}

}  // namespace
}  // namespace rehearsal::real
