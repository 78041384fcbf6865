#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

// The settings that LibTorch keeps once for a process. Over TCP a worker is a process and has them
// for itself; here each life has, too.
namespace rehearsal::sim {

// The default dtype, the number of threads, anomaly mode, and what at::globalContext() says of
// algorithms, backends and precisions.
class TorchSettings {
 public:
  [[nodiscard]] static TorchSettings of_process();

  // Sets what is otherwise in the process.
  void install() const;

  bool operator==(const TorchSettings&) const = default;

 private:
  std::vector<int64_t> values_;  // in the order of the table in torch_settings.cc
};

// Puts them back, when it dies, as they were when it was made.
class TorchSettingsKept {
 public:
  TorchSettingsKept() : before_(TorchSettings::of_process()) {}
  ~TorchSettingsKept() { before_.install(); }
  TorchSettingsKept(const TorchSettingsKept&) = delete;
  TorchSettingsKept& operator=(const TorchSettingsKept&) = delete;

 private:
  const TorchSettings before_;
};

// The settings that the process has while no life's code runs. Every life begins with them.
class OuterSettings {
 public:
  OuterSettings() { remember(); }

  // Looks at them again, unless a life's code runs: other code may have changed them.
  void look();

 private:
  friend class LifeSettings;

  // Whether the process has these, as far as a look of a few nanoseconds can tell.
  [[nodiscard]] bool are_there() const;
  void remember();

  TorchSettings settings_ = TorchSettings::of_process();
  bool life_runs_ = false;
  // The traces by which a change is noticed.
  std::vector<std::byte> bytes_;
  int8_t dtype_ = 0;
  int threads_ = 0;
  bool anomaly_ = false;
  bool checks_nan_ = false;
  uint64_t precision_calls_ = 0;
};

// Held while code of one life runs: that finds what it has set itself, or else the outer settings,
// and what it sets is kept for the next time. Behind it the process has the outer settings again.
// One within another changes nothing: code of one life never runs within that of another.
class LifeSettings {
 public:
  // `outer` null: the cluster has ended, and nothing is kept. `own`: the life's; null if they are
  // as outside.
  LifeSettings(OuterSettings* outer, std::unique_ptr<TorchSettings>& own);
  ~LifeSettings();
  LifeSettings(const LifeSettings&) = delete;
  LifeSettings& operator=(const LifeSettings&) = delete;

 private:
  OuterSettings* const outer_;  // null: nothing is to be done
  std::unique_ptr<TorchSettings>& own_;
};

}  // namespace rehearsal::sim
