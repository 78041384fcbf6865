#include "real_net/runtime/thread_record.h"

#include <cerrno>
#include <system_error>

#include "core/base/check.h"

namespace rehearsal::real {

ThreadTable::ThreadTable() {
  const int status = pthread_key_create(&key_, &ThreadTable::on_thread_end);
  if (status != 0) throw std::system_error(status, std::generic_category(), "pthread_key_create");
}

ThreadTable::~ThreadTable() { pthread_key_delete(key_); }

ThreadRecord* ThreadTable::find() const {
  auto* entry = static_cast<Entry*>(pthread_getspecific(key_));
  return entry != nullptr ? &entry->record : nullptr;
}

ThreadRecord& ThreadTable::current() {
  if (ThreadRecord* record = find()) [[likely]]
    return *record;
  ThreadRecord& record = reserve();
  bind(record);
  return record;
}

void ThreadTable::bind(ThreadRecord& reserved) {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (&entry->record != &reserved) continue;
    const int status = pthread_setspecific(key_, entry.get());
    REHEARSAL_CHECK(status == 0, status);
    return;
  }
  REHEARSAL_CHECK(false);
}

ThreadTable::Entry& ThreadTable::claim() {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : entries_) {
    if (!entry->free) continue;
    entry->free = false;
    return *entry;
  }
  entries_.push_back(std::make_unique<Entry>());
  entries_.back()->table = this;
  entries_.back()->record.parked.thread = &entries_.back()->record;
  return *entries_.back();
}

void ThreadTable::on_thread_end(void* ended) {
  auto* entry = static_cast<Entry*>(ended);
  const std::lock_guard lock(entry->table->mutex_);
  // These know where the thread that has ended kept LibTorch's state.
  std::destroy_at(&entry->record.strand_state);
  std::construct_at(&entry->record.strand_state);
  std::destroy_at(&entry->record.inline_state);
  std::construct_at(&entry->record.inline_state);
  entry->record.comes_again = false;
  entry->free = true;
}

}  // namespace rehearsal::real
