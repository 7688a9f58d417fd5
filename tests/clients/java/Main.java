import org.openapitools.client.ApiClient;
import org.openapitools.client.api.LocalitiesApi;

/** Reads a service with the generated client, and prints what it found. */
public class Main {
  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    System.out.println(new LocalitiesApi(client).getLocality(10010001, null, null, null, null).getNombre());
  }
}
