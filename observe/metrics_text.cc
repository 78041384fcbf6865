#include "observe/metrics_text.h"

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/printable.h"

namespace rehearsal::observe {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

std::string_view form_name(CallForm form) {
  switch (form) {
    case CallForm::rpc_sync:
      return "rpc_sync";
    case CallForm::remote:
      return "remote";
    case CallForm::rpc_async:
      return "rpc_async";
  }
  return "";
}

// Exact: 12'500 µs is 0.0125.
std::string seconds(Duration time) {
  const auto nanoseconds = static_cast<uint64_t>(time.count());
  std::string text = std::to_string(nanoseconds / 1'000'000'000);
  std::string rest = std::to_string(1'000'000'000 + nanoseconds % 1'000'000'000).substr(1);
  rest.erase(rest.find_last_not_of('0') + 1);
  return rest.empty() ? text : text + "." + rest;
}

void append_escaped(std::string& out, std::string_view value) {
  for (const char letter : printable_lines(value)) {
    if (letter == '\n') {
      out += "\\n";
      continue;
    }
    if (letter == '\\' || letter == '"') out += '\\';
    out += letter;
  }
}

class Text {
 public:
  explicit Text(const MetricsSnapshot& snapshot) : snapshot_(snapshot) {}

  std::string write() {
    calls("calls", "made by this worker", "rehearsal_calls", snapshot_.made, /*made=*/true);
    times("rehearsal_call_seconds", "Time from a call of this worker to its result or error.",
          snapshot_.made_times, &FunctionTimes::total);
    gauge("rehearsal_calls_unanswered", "Calls of this worker that wait for their answer.",
          std::to_string(snapshot_.unanswered));
    calls("calls", "served by this worker", "rehearsal_served", snapshot_.served, /*made=*/false);
    times("rehearsal_served_seconds", "Time from the arrival of a call to its answer.",
          snapshot_.served_times, &FunctionTimes::total);
    times("rehearsal_served_waiting_seconds",
          "Time from the arrival of a call until its function started.", snapshot_.served_times,
          &FunctionTimes::waiting);
    gauge("rehearsal_served_waiting", "Calls that have arrived and have not started.",
          std::to_string(snapshot_.waiting));
    gauge("rehearsal_served_waiting_oldest_seconds",
          "How long the oldest call that has not started has waited.",
          seconds(snapshot_.oldest_waiting));
    gauge("rehearsal_served_running", "Calls that have started and are not answered.",
          std::to_string(snapshot_.running));
    autograd();
    traffic();
    if (snapshot_.peaks) peaks(*snapshot_.peaks);
    if (snapshot_.polling) polling(*snapshot_.polling);
    if (!snapshot_.notes.empty())
      head("rehearsal_note", "The latest number that the program has noted, by its name.", "gauge");
    for (const auto& [name, number] : snapshot_.notes)
      sample("rehearsal_note", {{"note", name}}, number);
    return std::move(out_);
  }

 private:
  void head(std::string_view name, std::string_view help, std::string_view type) {
    out_ += "# HELP ";
    out_ += name;
    out_ += ' ';
    out_ += help;
    out_ += "\n# TYPE ";
    out_ += name;
    out_ += ' ';
    out_ += type;
    out_ += '\n';
  }

  void sample(std::string_view name, const Labels& labels, std::string_view value) {
    out_ += name;
    out_ += "{worker=\"";
    append_escaped(out_, snapshot_.worker);
    for (const auto& [label, text] : labels) {
      out_ += "\",";
      out_ += label;
      out_ += "=\"";
      append_escaped(out_, text);
    }
    out_ += "\"} ";
    out_ += value;
    out_ += '\n';
  }

  std::string_view peer(uint32_t rank) const {
    return rank < snapshot_.names.size() ? std::string_view(snapshot_.names[rank]) : "";
  }

  using OfFunction = std::function<void(const Labels&, const CallCounts&)>;
  static void each(const MetricsSnapshot& snapshot, const MetricsSnapshot::Functions& functions,
                   const OfFunction& visit) {
    for (const auto& [function, peers] : functions)
      for (const auto& [rank, counts] : peers) {
        const std::string_view name =
            rank < snapshot.names.size() ? std::string_view(snapshot.names[rank]) : "";
        visit({{"function", function}, {"peer", name}}, counts);
      }
  }

  void calls(const std::string& what, const std::string& whose, const std::string& stem,
             const MetricsSnapshot::Functions& functions, bool made) {
    const std::string begun = stem + (made ? "_total" : "_started_total");
    head(begun, "Number of " + what + " " + whose + (made ? "." : " that have started."),
         "counter");
    each(snapshot_, functions, [&](Labels labels, const CallCounts& counts) {
      if (!made) return sample(begun, labels, std::to_string(counts.begun));
      labels.emplace_back("form", "");
      for (const auto& [form, count] : counts.by_form) {
        labels.back().second = form_name(form);
        sample(begun, labels, std::to_string(count));
      }
    });
    const std::string ended = stem + (made ? "_completed_total" : "_total");
    head(ended, "Number of " + what + " " + whose + " that have ended, with or without an error.",
         "counter");
    each(snapshot_, functions, [&](const Labels& labels, const CallCounts& counts) {
      sample(ended, labels, std::to_string(counts.ended));
    });
    const std::string errors = stem + "_errors_total";
    head(errors, "Number of " + what + " " + whose + " that have ended with an error, by its kind.",
         "counter");
    each(snapshot_, functions, [&](Labels labels, const CallCounts& counts) {
      labels.emplace_back("kind", "");
      for (const auto& [kind, count] : counts.errors) {
        labels.back().second = name_of(kind);
        sample(errors, labels, std::to_string(count));
      }
    });
  }

  void times(const std::string& name, std::string_view help, const MetricsSnapshot::Times& times,
             Histogram FunctionTimes::*which) {
    head(name, help, "histogram");
    for (const auto& [function, all] : times) {
      const Histogram& histogram = all.*which;
      if (histogram.count() == 0) continue;
      uint64_t so_far = 0;
      for (size_t bucket = 0; bucket < Histogram::kBounds; ++bucket) {
        so_far += histogram.count_of(bucket);
        sample(name + "_bucket",
               {{"function", function}, {"le", seconds(Histogram::bound(bucket))}},
               std::to_string(so_far));
      }
      const std::string count = std::to_string(histogram.count());
      sample(name + "_bucket", {{"function", function}, {"le", "+Inf"}}, count);
      sample(name + "_sum", {{"function", function}}, seconds(histogram.sum()));
      sample(name + "_count", {{"function", function}}, count);
    }
  }

  void gauge(std::string_view name, std::string_view help, std::string_view value) {
    head(name, help, "gauge");
    sample(name, {}, value);
  }

  void autograd() {
    gauge("rehearsal_autograd_contexts", "Autograd contexts that this worker holds a part of.",
          std::to_string(snapshot_.contexts));
    if (snapshot_.send_functions)
      gauge("rehearsal_send_functions", "Send functions that these contexts hold here.",
            std::to_string(*snapshot_.send_functions));
    gauge("rehearsal_passes_running", "Backward passes that this worker is in.",
          std::to_string(snapshot_.passes));
    counter("rehearsal_passes_started_total", "Backward passes that this worker has come into.",
            std::to_string(snapshot_.passes_begun));
    counter("rehearsal_passes_failed_total", "Those of them that have failed.",
            std::to_string(snapshot_.passes_failed));
  }

  void counter(std::string_view name, std::string_view help, std::string_view value) {
    head(name, help, "counter");
    sample(name, {}, value);
  }

  void traffic() {
    struct Row {
      std::string_view name, help;
      uint64_t PeerCounts::*count;
    };
    static constexpr Row kRows[] = {
        {"rehearsal_messages_sent_total", "Messages to a peer, each once.",
         &PeerCounts::messages_sent},
        {"rehearsal_sent_bytes_total", "Bytes of these: envelopes and tensors.",
         &PeerCounts::bytes_sent},
        {"rehearsal_messages_received_total", "Messages from a peer, each once.",
         &PeerCounts::messages_received},
        {"rehearsal_received_bytes_total", "Bytes of these: envelopes and tensors.",
         &PeerCounts::bytes_received},
        {"rehearsal_messages_resent_total", "Messages sent again after a link was lost.",
         &PeerCounts::messages_resent},
        {"rehearsal_resent_bytes_total", "Bytes of these: envelopes and tensors.",
         &PeerCounts::bytes_resent},
        {"rehearsal_frames_dropped_total",
         "Frames that were not used: duplicates, and those of an ended session.",
         &PeerCounts::frames_dropped},
        {"rehearsal_links_up_total", "How often a link to a peer came up.", &PeerCounts::links_up},
        {"rehearsal_links_lost_total", "How often a link to a peer was lost.",
         &PeerCounts::links_lost},
        {"rehearsal_peers_fenced_total", "How often a peer was given up for good.",
         &PeerCounts::fenced},
    };
    for (const Row& row : kRows) {
      head(row.name, row.help, "counter");
      for (const auto& [rank, counts] : snapshot_.peers)
        sample(row.name, {{"peer", peer(rank)}}, std::to_string(counts.*row.count));
    }
  }

  void polling(const PollingCounts& counts) {
    counter("rehearsal_poll_looks_total", "How often a thread that waits looked at the network.",
            std::to_string(counts.looks));
    counter("rehearsal_poll_yields_total",
            "How often it left the processor to others between two looks.",
            std::to_string(counts.yields));
    counter("rehearsal_poll_sleeps_total", "How often it slept until the network had something.",
            std::to_string(counts.sleeps));
    counter("rehearsal_thread_wakes_total", "How often a thread was woken by another.",
            std::to_string(counts.wakes));
  }

  void peaks(const PeerPeaks& most) {
    constexpr std::string_view kName = "rehearsal_peer_peak";
    head(kName,
         "The most that any one peer has made this worker hold, of each thing that is limited.",
         "gauge");
    const std::pair<std::string_view, uint64_t> rows[] = {
        {"decoded_bytes", most.decoded_bytes}, {"gaps", most.gaps},
        {"contexts", most.contexts},           {"passes", most.passes},
        {"failed_passes", most.failed_passes}, {"sends", most.sends},
        {"references", most.references},       {"awaited_values", most.awaited_values},
        {"early_cancels", most.early_cancels}, {"served_bytes", most.served_bytes},
        {"gatherings", most.gatherings}};
    for (const auto& [thing, count] : rows)
      sample(kName, {{"thing", thing}}, std::to_string(count));
  }

  const MetricsSnapshot& snapshot_;
  std::string out_;
};

}  // namespace

std::string metrics_text(const MetricsSnapshot& snapshot) { return Text(snapshot).write(); }

}  // namespace rehearsal::observe
