#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "core/values/value.h"

namespace rehearsal {

template <class T>
Payload written(const T& value) {
  Payload payload;
  ValueWriter writer(payload);
  Value<T>::write(writer, value);
  writer.finish();
  return payload;
}

template <class T>
T read(Payload payload) {
  ValueReader reader(payload);
  T value = Value<T>::read(reader);
  reader.finish();
  return value;
}

template <class T>
void expect_round_trip(const T& value) {
  EXPECT_EQ(read<T>(written(value)), value);
}

template <class T>
std::string signature_of() {
  WireSignature signature;
  Value<T>::sign(signature);
  return signature.text();
}

inline Payload of_bytes(std::string values) {
  Payload payload;
  payload.values = std::move(values);
  return payload;
}

template <class T>
std::string refusal(Payload payload) {
  try {
    (void)read<T>(std::move(payload));
    return "accepted";
  } catch (const BadValue& bad) {
    return bad.what();
  }
}
template <class T>
std::string refusal(std::string values) {
  return refusal<T>(of_bytes(std::move(values)));
}

// Why a value cannot be sent.
template <class T>
std::string refusal_to_write(const T& value) {
  try {
    (void)written(value);
    return "accepted";
  } catch (const BadValue& bad) {
    return bad.what();
  }
}

// Every prefix is refused; every byte changed to every other gives a value or BadValue.
template <class T>
void expect_only_bad_values(const T& value) {
  const Payload good = written(value);
  for (size_t size = 0; size < good.values.size(); ++size) {
    Payload cut = good;
    cut.values.resize(size);
    EXPECT_NE(refusal<T>(std::move(cut)), "accepted") << size << " of " << good.values.size();
  }
  for (size_t at = 0; at < good.values.size(); ++at)
    for (int byte = 0; byte < 256; ++byte) {
      Payload changed = good;
      changed.values[at] = static_cast<char>(byte);
      (void)refusal<T>(std::move(changed));
    }
}

}  // namespace rehearsal
