#include "tests/conformance/transport_fault_suite.h"
#include "tests/conformance/transport_filling_suite.h"
#include "tests/conformance/transport_frame_suite.h"
#include "tests/conformance/transport_life_suite.h"
#include "tests/conformance/transport_suite.h"
#include "tests/real_net/support/tcp_world.h"

namespace rehearsal::conformance {

INSTANTIATE_TYPED_TEST_SUITE_P(OverTcp, TransportSuite, real::TcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTcp, TransportFrameSuite, real::TcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTcp, TransportLifeSuite, real::TcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTcp, TransportFaultSuite, real::TcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTcp, TransportFillingSuite, real::TcpWorld);

INSTANTIATE_TYPED_TEST_SUITE_P(OverTls, TransportSuite, real::SecretTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTls, TransportFrameSuite, real::SecretTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTls, TransportLifeSuite, real::SecretTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTls, TransportFaultSuite, real::SecretTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverTls, TransportFillingSuite, real::SecretTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverMacs, TransportSuite, real::MacTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverMacs, TransportFrameSuite, real::MacTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverMacs, TransportLifeSuite, real::MacTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverMacs, TransportFaultSuite, real::MacTcpWorld);
INSTANTIATE_TYPED_TEST_SUITE_P(OverMacs, TransportFillingSuite, real::MacTcpWorld);

}  // namespace rehearsal::conformance
